(* Maps a file, which is the first argument, into memory. Prints how many words that are. *)

let () =
  let words = 1 lsl 18 in
  let file = Unix.openfile Sys.argv.(1) [ Unix.O_RDWR; Unix.O_CREAT ] 0o600 in
  let map () =
    let mapped = Unix.map_file file Bigarray.float64 Bigarray.c_layout true [| words |] in
    Bigarray.array1_of_genarray mapped
  in
  let kept = List.init 4 (fun _ -> map ()) in
  Gc.minor ();
  List.iter (fun a -> a.{0} <- a.{0} +. 1.) kept;
  Printf.printf "%d\n" (List.length kept * words)
