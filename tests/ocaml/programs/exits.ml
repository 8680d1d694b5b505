(* Every way to end: exits.exe return | exit | at_exit | _exit | raise | thread | overflow *)

let allocate n = List.length (Sys.opaque_identity (List.init n (fun i -> string_of_int i)))
let rec overflow n = 1 + overflow (n + 1)

let () =
  Printf.printf "allocated %d\n%!" (allocate 60_000);
  match Sys.argv.(1) with
  | "return" -> ()
  | "exit" -> exit 7
  | "at_exit" ->
      at_exit (fun () -> Printf.printf "at exit %d\n" (allocate 60_000));
      exit 8
  | "_exit" -> Unix._exit 9
  | "raise" -> failwith "nobody catches this"
  | "thread" ->
      let t = Thread.create (fun () -> exit 10) () in
      Thread.join t;
      Thread.delay 5.
  | "overflow" -> (
      (* OCaml 5 would fill a gigabyte first; OCaml 4 has the system's limit. *)
      Gc.set { (Gc.get ()) with stack_limit = 200_000 };
      try ignore (overflow 0) with Stack_overflow -> print_endline "stack overflow")
  | _ -> assert false
