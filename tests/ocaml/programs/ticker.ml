(* For tests that kill it: allocates one block of a size of its own, says so with the time, and goes
   on until it is killed. After `ticker.exe N` ticks it only sleeps. *)

let block = 777

let rec tick limit n =
  if n = limit then Unix.sleep 60;
  ignore (Sys.opaque_identity (Array.make block n));
  (* Other blocks, so that there is more to write than that. *)
  for i = 1 to 20 do
    ignore (Sys.opaque_identity (string_of_int i))
  done;
  Printf.printf "%d %.0f\n%!" n (Unix.gettimeofday () *. 1e6);
  tick limit (n + 1)

let () = tick (if Array.length Sys.argv > 1 then int_of_string Sys.argv.(1) else -1) 0
