(* A server on Eio in two domains, each with clients of its own in fibers. It says how many requests each client
   made, and a checksum of the answers.

   eio_server FILE             until FILE exists
   eio_server CLIENTS REQUESTS so many clients for each domain, with so many requests
   eio_server check REQUESTS   one client, with so many requests *)

module Words = Map.Make (String)

let answer text =
  let add words word = Words.update word (fun n -> Some (1 + Option.value n ~default:0)) words in
  let words = List.fold_left add Words.empty (String.split_on_char ' ' text) in
  Words.fold (fun word n answer -> Printf.sprintf "%s=%d" word n :: answer) words []
  |> List.rev |> String.concat " "

let serve flow _ =
  let lines = Eio.Buf_read.of_flow flow ~max_size:1_000_000 in
  let rec loop () =
    match Eio.Buf_read.line lines with
    | line ->
        Eio.Flow.copy_string (answer line ^ "\n") flow;
        loop ()
    | exception End_of_file -> ()
  in
  loop ()

let question request =
  String.concat " " (List.init 50 (fun i -> string_of_int (i * request mod 23)))

let ask net address is_enough =
  Eio.Switch.run @@ fun sw ->
  let flow = Eio.Net.connect ~sw net address in
  let lines = Eio.Buf_read.of_flow flow ~max_size:1_000_000 in
  let rec loop requests sum =
    if is_enough requests then (requests, sum)
    else begin
      Eio.Flow.copy_string (question requests ^ "\n") flow;
      let length = String.length (Eio.Buf_read.line lines) in
      loop (requests + 1) (((sum * 31) + length) land 0xffffff)
    end
  in
  loop 0 0

let run env clients is_enough =
  let net = Eio.Stdenv.net env in
  Eio.Switch.run @@ fun sw ->
  let socket = Eio.Net.listen ~sw ~backlog:64 net (`Tcp (Eio.Net.Ipaddr.V4.loopback, 0)) in
  let address = Eio.Net.listening_addr socket in
  Eio.Fiber.fork_daemon ~sw (fun () -> Eio.Net.run_server socket serve ~on_error:raise);
  Eio.Fiber.List.map (fun () -> ask net address is_enough) (List.init clients ignore)

let () =
  Eio_main.run @@ fun env ->
  let in_two_domains clients is_enough =
    let work () = run env clients is_enough in
    let other () = Eio.Domain_manager.run (Eio.Stdenv.domain_mgr env) work in
    let here, there = Eio.Fiber.pair work other in
    here @ there
  in
  let results =
    match Sys.argv with
    | [| _; "check"; requests |] -> run env 1 (( = ) (int_of_string requests))
    | [| _; clients; requests |] -> in_two_domains (int_of_string clients) (( = ) (int_of_string requests))
    | _ -> in_two_domains 4 (fun requests -> requests land 15 = 0 && Sys.file_exists Sys.argv.(1))
  in
  List.iter (fun (requests, sum) -> Printf.printf "%d rounds: %x\n" requests sum) results
